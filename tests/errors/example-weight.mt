data {
  train = npz("train.npz")
  x     : f32[4]
  y     : f32[1]
  w     : f32[2]
}
model {
  p = linear(x, 1)
}
train {
  loss           = mse(p, y)
  example_weight = w
  optimizer      = adam(1e-3)
}
