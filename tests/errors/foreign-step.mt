data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  a = x[::2]
  b = x[0:4:2]
  c = x[...]
  d = x[]
  y = linear(a, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
