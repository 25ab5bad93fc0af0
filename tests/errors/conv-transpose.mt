data {
  train = idx("images", "labels")
  x     : f32[4, 3, 3]
  label : class[3]
}
model {
  a = conv_transpose2d(x, 4, 3, stride = 2, output_padding = 2)
  b = conv_transpose2d(x, 4, 3, padding = 3)
  c = conv_transpose2d(x, 4, 3, groups = 3)
  d = conv_transpose2d(flatten(x), 4, 3)
  y = a + b + c + d
}
train {
  loss      = cross_entropy(linear(flatten(y), 3), label)
  optimizer = sgd(0.1)
}
