# Two halves that belong together: which right half of a digit is that of a left half, among those of a batch (InfoNCE)?
param size      = 32            # numbers that a half becomes
param sharpness = 10 in 1..100  # the higher, the more the nearest wrong half counts
param lr        = 1e-3 in 0..1  # learning rate

fn tower(x) {
  h  = relu(linear(flatten(x), 256))
  h2 = relu(linear(h, 128))
  v  = linear(h2, size)
  return v / (norm(v) + 1e-6)
}

data {
  train = idx("mnist/train-images-idx3-ubyte")
  test  = idx("mnist/t10k-images-idx3-ubyte")
  image : u8[28, 28]
}

model {
  left   = tower(image[:, :14] / 255)
  right  = tower(image[:, 14:] / 255)
  rights = matmul(left, batch(right), transpose_b = true) * sharpness  # of this left half with each right one
  lefts  = matmul(right, batch(left), transpose_b = true) * sharpness
  own    = batch_place()
}

train {
  loss      = (cross_entropy(rights, own) + cross_entropy(lefts, own)) / 2
  metric    = accuracy(rights, own)
  predict   = left
  optimizer = adam(cosine_lr(lr))
  batch     = 128
  epochs    = 5
}
