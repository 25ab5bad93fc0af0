# A variational autoencoder: handwritten digits as a few normal numbers each, from which digits are drawn.
param code   = 8  # numbers that an image is made of
param hidden = 256
param lr     = 2e-3 in 0..1  # highest learning rate

data {
  train = idx("mnist/train-images-idx3-ubyte")
  test  = idx("mnist/t10k-images-idx3-ubyte")
  image : u8[28, 28]
}

model {
  x        = flatten(image) / 255
  encode   = relu(linear(x, hidden))
  mean_of  = linear(encode, code)
  spread   = linear(encode, code)                               # the logarithm of the variance
  z        = mean_of + exp(spread / 2) * random_normal([code])  # in evaluation: the mean
  decode   = relu(linear(z, hidden))
  scores   = linear(decode, 784)
  restored = 784 * bce(scores, x, from_logits = true)       # -log p(x | z)
  apart    = sum(mean_of^2 + exp(spread) - spread - 1) / 2  # KL(q(z | x) || normal)
}

train {
  loss      = restored + apart
  metric    = [restored, apart]
  predict   = sigmoid(scores)
  optimizer = adam(cosine_lr(lr))
  batch     = 128
  epochs    = 5
}
