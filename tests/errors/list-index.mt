data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  a = [1, 2, 3][3]
  b = [[1, 2], [3, 4]][0, -3]
  c = [[1, 2], [3, 4]][0, 1, 0]
  d = [1, 2, 3][1:1]
  e = [1, 2, 3][0.5]
  f = [1, 2, 3][label]
  y = linear(x * a, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
