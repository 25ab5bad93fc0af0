# A number is predicted.
data {
  train  = idx("x", "target")
  x      : f32[6]
  target : f32[1]
}

model {
  y = linear(x, 1)
}

train {
  loss      = mse(y, target)
  optimizer = sgd(0.1)
  batch     = 4
  metric    = [mae(y, target)]
}
