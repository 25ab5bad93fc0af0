# Constants are folded, divisions by them become products, ones and zeros disappear.
data {
  train = idx("x", "y")
  x     : f32[6]
  y     : f32[6]
}

model {
  w = weight([6])
  z = (x * w / 4 + 0) * (2 - 1)^3 + exp(0) * sqrt(x * x + 1)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 4
}
