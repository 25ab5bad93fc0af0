data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  layer f(v) = linear(v, 3)
  a = f(x)
  y = a + f(concat([x, x]))
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
