data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  layer f(v) = linear(v, 6)
  h = linear(x, 6, name = "f")
  y = linear(f(h), 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
