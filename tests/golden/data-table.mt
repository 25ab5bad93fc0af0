data {
  train = table([
      [0, 0, 0],  # x, label
      [0, 1, 1],
      [1, -0.5, 1 - 1],
  ])
  x     : f32[2]
  label : class[2]
}
model {
  scores = linear(tanh(linear(x, 4)), 2)
}
train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
