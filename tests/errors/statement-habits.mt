fn pair(x) {
  return (x, -x)
}
data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  (a, b) = pair(x)
  c = 1
  [a, b] = pair(x)
  d = 1
  x[0] = 3
  e = 1
  layer f = linear(x, 3)
  layer g(x)
  y = linear(x, 3)
  layer h(x) { return linear(x, 3) }
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
