data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  y = linear(x, 3)
  q = softmax(linear(x, 3))
  a = cross_entropy(y, q, class_weights = [1, 2, 3])
  b = cross_entropy(y, label, class_weights = y)
  c = cross_entropy(y, label, class_weights = 2)
}
train {
  loss      = cross_entropy(y, label, class_weights = [1, 2])
  optimizer = sgd(0.1)
}
