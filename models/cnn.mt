# A small convolutional network on handwritten digits.
param lr = 1e-3 in 0..1  # learning rate

data {
  train = idx("mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte")
  test  = idx("mnist/t10k-images-idx3-ubyte", "mnist/t10k-labels-idx1-ubyte")
  image : u8[28, 28]
  label : class[10]
}

model {
  x     = reshape(image, [1, 28, 28]) / 255
  conv1 = max_pool(relu(conv2d(x, 8, 3, padding = 1)), 2)
  conv2 = max_pool(relu(conv2d(conv1, 16, 3, padding = 1)), 2)
  fc1   = relu(linear(flatten(conv2), 64))
  fc2   = linear(fc1, 10)
}

train {
  loss      = cross_entropy(fc2, label)
  metric    = accuracy(fc2, label)
  optimizer = adam(lr)
  batch     = 64
  epochs    = 10
}
