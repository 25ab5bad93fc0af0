# ResNet-18 for images of 32 x 32: a 3 x 3 stem, and no pooling before the stages.
include "residual.mt"
param lr        = 0.4 in 0..10  # highest learning rate
param smoothing = 0.1 in 0..1   # of the labels
param examples  = 512           # of a batch

data {
  train = cifar10("cifar10/cifar-10-batches-bin", "train")
  test  = cifar10("cifar10/cifar-10-batches-bin", "test")
  image : u8[3, 32, 32]
  label : class[10]
}

model {
  x     = (random_flip(random_crop(image, padding = 4)) / 255 - 0.473) / 0.251
  conv1 = conv2d(cutout(x, 16), 64, 3, padding = 1, bias = false)  # what is cut out is 0, the mean
  bn1   = batch_norm(conv1)
  h     = relu(bn1)
  repeat stage in 1..5 {
    h = basic(h, 32 * 2^stage, stride = minimum(stage, 2), name = "layer{stage}.0")
    h = basic(h, 32 * 2^stage, name = "layer{stage}.1")
  }
  fc = linear(global_avg_pool(h), 10)
}

train {
  loss      = cross_entropy(fc, label, label_smoothing = smoothing)
  metric    = accuracy(fc, label)
  optimizer = sgd(one_cycle_lr(lr), momentum = 0.9, nesterov = true, weight_decay = 5e-4)
  precision = bf16
  batch     = examples
  epochs    = 120
}
