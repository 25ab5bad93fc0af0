data {
  train = idx("x", "y")
  x     : f32[3]
  y     : f32[1]
}
model {
  p     = linear(x, 1)
  error = rmse(p, y)
  half  = error / 2
}
train {
  loss      = error
  metric    = [half, mean(error)]
  optimizer = adam(1e-3)
}
