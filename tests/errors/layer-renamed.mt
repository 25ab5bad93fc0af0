data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
fn crossed(v, turned) {
  if turned {
    return tanh(linear(v, 6, name = "b")) + linear(v, 6, name = "a")
  }
  return tanh(linear(v, 6, name = "a")) + linear(v, 6, name = "b")
}
model {
  layer f(v, turned) = crossed(v, turned)
  layer g(v, n)      = linear(v, 6, name = "g{n}")
  h = f(x, false) + f(x, true)
  y = linear(h + g(x, 1) + g(x, 2), 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
