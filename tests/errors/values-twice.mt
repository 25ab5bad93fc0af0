data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
fn halves(x) { return x / 2, x - x / 2 }
model {
  a, a = halves(x)
  x, b = halves(x)
  y    = linear(a + b, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
