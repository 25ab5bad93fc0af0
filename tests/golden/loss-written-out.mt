# A loss in plain arithmetic.
data {
  train  = idx("x", "target")
  x      : f32[6]
  target : f32[1]
}

model {
  y = linear(x, 1)
}

train {
  loss      = mean((y - target) ^ 2)
  predict   = y
  optimizer = sgd(0.1)
}
