# LeNet-5 of 1998, with the activations of its time, on handwritten digits.
param lr = 2e-3 in 0..1  # learning rate

data {
  train = idx("mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte")
  test  = idx("mnist/t10k-images-idx3-ubyte", "mnist/t10k-labels-idx1-ubyte")
  image : u8[28, 28]
  label : class[10]
}

model {
  x      = reshape(image, [1, 28, 28]) / 255
  c1     = tanh(conv2d(x, 6, 5, padding = 2))
  s2     = avg_pool(c1, 2)
  c3     = tanh(conv2d(s2, 16, 5))
  s4     = avg_pool(c3, 2)
  c5     = tanh(conv2d(s4, 120, 5))
  f6     = tanh(linear(flatten(c5), 84))
  output = linear(f6, 10)
}

train {
  loss      = cross_entropy(output, label)
  metric    = accuracy(output, label)
  optimizer = adam(cosine_lr(lr))
  batch     = 64
  epochs    = 10
}
