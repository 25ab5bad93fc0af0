data {
  train = idx("x", "y")
  x     : f32[12]
  y     : f32[3]
}
model {
  h = linear(x, 2147483647)
  z = linear(h, 3)
}
train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  clip_norm = 1
}
