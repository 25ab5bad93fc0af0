data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
fn halves(x) {
  return x / 2, x - x / 2
}
fn one(x) {
  return x
}
model {
  a, b, c = halves(x)
  d, e    = one(x)
  f       = halves(x)
  g       = relu(halves(x)) + halves(x)
  h, i    = x
  j, k    = relu(x)
  m, n    = [x, x]
  y       = linear(b + e, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
