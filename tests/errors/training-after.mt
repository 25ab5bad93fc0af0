data {
  train = idx("x", "y")
  x     : f32[8]
  label : class[4]
}

model {
  scores = linear(x, 4)
  if training() {
    aux = linear(x, 2)
  }
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
