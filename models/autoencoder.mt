# Handwritten digits pressed through a narrow layer and restored.
param code = 32            # numbers that an image is pressed into
param lr   = 1e-3 in 0..1  # learning rate

data {
  train = idx("mnist/train-images-idx3-ubyte")
  test  = idx("mnist/t10k-images-idx3-ubyte")
  image : u8[28, 28]
}

model {
  x         = flatten(image) / 255
  encoder_1 = relu(linear(x, 256))
  encoder_2 = linear(encoder_1, code)
  decoder_1 = relu(linear(encoder_2, 256))
  decoder_2 = sigmoid(linear(decoder_1, 784))
}

train {
  loss      = mse(decoder_2, x)
  optimizer = adam(cosine_lr(lr))
  batch     = 128
  epochs    = 20
}
