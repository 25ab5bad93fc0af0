data {
  train = csv("load.csv", stride = 1)
  past  : f32[24, 2] = column("load")
  wind  : f32[24, 2] = columns("speed", "gust", missing = "skip")
  next  : f32[6]     = column("load", from = -1)
}
model {
  y = linear(flatten(past), 6)
}
train {
  loss      = mse(y, next)
  optimizer = adam(1e-3)
}
