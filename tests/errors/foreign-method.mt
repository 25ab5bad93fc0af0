data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  h = x.flatten()
  n = x.shape
  w = square(h.weight) + h.bias
  y = linear(h.view(-1), n).softmaxed()
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
