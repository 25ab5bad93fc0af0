data {
  train = csv("load.csv", stride = 1)
  test  = csv("later.csv")
  past  : f32[24] = column("load")
  next  : f32[6]  = column("load")
}
model {
  y = linear(past, 6)
}
train {
  loss      = mse(y, next)
  optimizer = adam(1e-3)
}
