fn inner(x, n) {
  return linear(x, n / 4)
}
fn outer(x) {
  return inner(x, 6)
}
data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  h = outer(x)
  y = linear(h, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
