data {
  examples = csv("sales.csv") in order
  split    = 80 / 20 in sequence
  x        : f32[3] = columns("a", "b", "c")
  label    : class[10]
}
model {
  scores = linear(x, 10) in order
}
train {
  loss      = cross_entropy(scores, label)
  optimizer = adam(1e-3)
  epochs    = 3 in order
}
