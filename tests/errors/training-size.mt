data {
  train = idx("x", "y")
  x     : f32[8]
  label : class[4]
}

model {
  width = 6
  if training() {
    width = 8
  }
  scores = linear(relu(linear(x, width)), 4)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
