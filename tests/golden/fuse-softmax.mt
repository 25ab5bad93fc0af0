# A row of a softmax, too long for a thin product, is one kernel of a team for each row.
data {
  train = idx("x", "y")
  x     : f32[256]
  y     : f32[512]
}

model {
  h = linear(x, 512)
  z = softmax(h) * 2
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 64
}
