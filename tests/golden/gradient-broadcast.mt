# What was broadcast on the way forward is summed on the way back.
data {
  train = idx("x", "y")
  x     : f32[6]
  y     : f32[6]
}

model {
  w = weight([6])
  b = weight([1])
  z = x * w + b
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 4
}
