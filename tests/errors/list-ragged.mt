data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  a = x * [[1, 2, 3], [4, 5]]
  b = x * [1, [2, 3]]
  c = x * [[1, 2], 3]
  d = x * []
  e = x * [[], []]
  f = x * ["a", true]
  g = x * [x, x]
  y = linear(a + b, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
