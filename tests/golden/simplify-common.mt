# Equal values are computed once.
data {
  train = idx("x", "y")
  x     : f32[6]
  y     : f32[6]
}

model {
  w = weight([6])
  z = exp(x * w) / (1 + exp(x * w))
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 4
}
