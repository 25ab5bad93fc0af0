data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  h = concat([reshape(x, [2, 3]), reshape(x, [3, 2])], axis = 0)
  y = linear(flatten(h), 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
