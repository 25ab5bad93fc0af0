data {
  train = csv("load.csv")
  past  : f32[1] = column("load")
  next  : f32[1] = column("next", from = 24)
}
model {
  y = linear(past, 1)
}
train {
  loss      = mse(y, next)
  optimizer = adam(1e-3)
}
