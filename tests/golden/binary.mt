# One output with a sigmoid, and the loss of its logit.
data {
  train  = idx("x", "target")
  x      : f32[6]
  target : f32[1]
}

model {
  y = linear(x, 1)
}

train {
  loss      = bce(y, target, from_logits = true)
  optimizer = sgd(0.1)
  batch     = 4
}
