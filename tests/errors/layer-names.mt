data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
fn twice(v) { return 2 * v }
model {
  layer f(v) = linear(v, 6)
  layer g(v) = f(f(v))
  layer tower(v) = linear(v, 6)
  layer f(v) = linear(v, 5)
  layer twice(v) = linear(v, 6)
  h = f
  f = 3
  a = f(x, name = "a")
  b = towr(x)
  y = linear(a + b, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
