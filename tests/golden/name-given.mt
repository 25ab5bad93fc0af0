# A layer can be given its name.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  h = relu(linear(x, 4, name = "fc1"))
  y = linear(h, 3, name = "head.fc2")
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
