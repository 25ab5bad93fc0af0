data {
  train = npz("train.npz")
  x     : f32[4]
  y     : f32[1]
  w     : f32
}
model {
  p = linear(x, 1)
}
train {
  loss           = mse(p, y)
  metric         = r2(p, y)
  example_weight = w
  optimizer      = sgd(0.1)
  batch          = 8
  accumulate     = 2
}
