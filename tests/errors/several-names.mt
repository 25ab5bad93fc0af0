data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  a = relu(xx)
  b = rellu(x)
  y = linear(x, 3, bais = true) + a + b + c
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
