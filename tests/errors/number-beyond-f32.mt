# Infinite where it is computed with.
data {
  train = table([[0, 0, 0], [0, 1, 1]])
  x : f32[2]
  label : class[2]
}
model {
  scores = maximum(-1e39, linear(x, 2)) * 1e39
}
train {
  loss = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
