# Metrics over the whole set: evaluation keeps what they compare, once for all that compare it.
data {
  train = idx("x", "price")
  x     : f32[4]
  price : f32[1]
}
model {
  y = linear(x, 1)
}
train {
  loss      = mse(y, price)
  metric    = [rmse(y, price), mae(y, price), r2(y, price)]
  optimizer = sgd(0.1)
  batch     = 8
}
