data {
  train = idx("images", "labels")
  x : f32[6]
  label : class[3]
}
model {
  y = linear(x, 3, bias = False)
  z = linear(x, 3, init = None)
}
train {
  loss = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
