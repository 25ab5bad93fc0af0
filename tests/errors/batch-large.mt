data {
  train = idx("images", "labels")
  image : u8[28, 28]
  label : class[10]
}
model {
  c1 = relu(conv2d(reshape(image, [1, 28, 28]) / 255, 8, 3))
  y = linear(flatten(c1), 10)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch = 16000000
}
