# A weight that is used twice gets the sum of both gradients.
data {
  train = idx("x", "y")
  x     : f32[6]
  y     : f32[6]
}

model {
  w = weight([6])
  z = sigmoid(x * w) * w
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 4
}
