data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  if size(x, 0) < 3 {
    layer f(v) = linear(v, 6)
  }
  y = linear(f(x), 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
