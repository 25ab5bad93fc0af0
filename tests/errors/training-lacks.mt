data {
  train = idx("x", "y")
  x     : f32[8]
  label : class[4]
}

model {
  h = x
  if training() {
    h = linear(x, 6)
  }
  scores = linear(h, 4)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
