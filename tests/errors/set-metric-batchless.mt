data {
  train = idx("x", "y")
  x     : f32[3]
  y     : f32[3]
}
model {
  w = weight([3])
}
train {
  loss      = mse(x * w, y)
  metric    = [r2(w, 2 * w), rmse(x, y), rmse(w * x, y)]
  optimizer = adam(1e-3)
}
