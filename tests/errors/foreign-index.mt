data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  h = x[0] + relu(x)[1]
  y = linear(h, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
