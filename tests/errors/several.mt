data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  a = linear(x, 2.5)
  b = linear(x, 0)
  c = linear(x, "3")
  y = a + b + c
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
