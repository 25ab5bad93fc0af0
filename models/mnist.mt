# A two-layer perceptron on handwritten digits.
param hidden = 128           # neurons of the hidden layer
param lr     = 1e-3 in 0..1  # learning rate

data {
  train = idx("mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte")
  test  = idx("mnist/t10k-images-idx3-ubyte", "mnist/t10k-labels-idx1-ubyte")
  image : u8[28, 28]  # the fields of one example; checked against the files
  label : class[10]
}

model {
  x      = flatten(image) / 255
  h      = relu(linear(x, hidden))
  logits = linear(h, 10)
}

train {
  loss      = cross_entropy(logits, label)
  metric    = accuracy(logits, label)
  optimizer = adam(lr)
  batch     = 64
  epochs    = 10
}
