data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  y = linear(x, 3)
}
train {
  loss      = mse(y, x)
  optimizer = sgd(0.1)
}
