data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
fn stack(v, deep) {
  h = linear(v, 6)
  if deep {
    h = linear(h, 6, name = "more")
  }
  return h
}
model {
  layer f(v, deep) = stack(v, deep)
  a = f(x, false)
  y = linear(a + f(x, true), 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
