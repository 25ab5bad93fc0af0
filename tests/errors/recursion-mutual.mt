fn a(x) { return b(x) }
fn b(x) { return c(x) }
fn c(x) { return a(x) }
data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  y = linear(a(x), 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
