data {
  train = npy("x", "y")
  x : f32[24, 8]
  y : f32[24]
}
model {
  table = weight([20, 8])
  h     = x + gather(table, iota(24))
  z     = reshape(linear(h, 1), [24])
}
train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 4
}
